"""Files in and out, and lines for people: the parts that several commands share."""
