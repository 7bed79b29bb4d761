"""A study: many runs that one file declares, done question by question and published as one page."""
