"""The URLs of the server, one module for each family."""
