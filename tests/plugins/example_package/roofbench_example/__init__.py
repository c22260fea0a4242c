"""An example of a plugin: the job ``matvec`` and the backend ``numpy``."""
