"""How many dimensions rows really have: estimates from neighbours, eigenvalues, pairs within radii, spanning trees."""
