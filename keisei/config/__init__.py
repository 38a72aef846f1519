"""The settings of a run: the schema, YAML files and overrides, and error messages that name the setting."""
