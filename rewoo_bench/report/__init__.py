"""A run as one HTML file: tables, figures and every trajectory, without a request to any network."""
