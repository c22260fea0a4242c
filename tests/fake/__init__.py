"""A backend without a device, for every test that needs one."""
