"""WebShop: a shop to be searched and bought from by text."""
