"""What is executed, and what it is compared with."""
