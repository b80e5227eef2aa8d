"""A model as one HTML file that works in the browser, without a server."""
