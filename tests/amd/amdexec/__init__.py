"""Executes AMD machine code without AMD hardware: docs/lab/amd-execution.md says what it checks and what it cannot see."""
