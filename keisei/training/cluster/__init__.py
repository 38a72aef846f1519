"""Collection over a Ray cluster: hands on other machines. docs/cluster.md is for users."""
