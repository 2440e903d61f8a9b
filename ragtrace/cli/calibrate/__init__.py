"""``ragtrace calibrate``: a judge compared with people."""
