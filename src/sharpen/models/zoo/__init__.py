"""The methods of the field, one file each that reads like its formula; their published settings are data (``settings/``)."""
