"""People's ratings of answers: taken from the application, counted, and compared with the judge."""
