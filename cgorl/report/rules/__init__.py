"""Rules made visible: as tables, as pictures, and where they match in a model or do not, and why."""
