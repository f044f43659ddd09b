"""What people look at: tables, figures and reports of jobs and experiments."""
