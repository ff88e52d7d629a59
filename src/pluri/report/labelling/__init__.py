"""The page on which items are labelled by keyboard, and the server that gives it: for this computer alone."""
