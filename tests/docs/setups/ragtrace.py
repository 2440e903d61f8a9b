import ragtrace
