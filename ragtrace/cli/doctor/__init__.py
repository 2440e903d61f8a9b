"""``ragtrace doctor``: settings, endpoints, judge, disk and packages."""
