"""The service's commands."""
