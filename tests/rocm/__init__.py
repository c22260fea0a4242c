"""AMD devices without one: torch's HIP surface and AMD SMI, as recorded outputs say that they answer."""
