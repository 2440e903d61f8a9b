"""HTML of views: templates, styles, scripts and charts that the server and the report share."""
