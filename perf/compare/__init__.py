"""Compares this library with other timers: runs all in turn, then writes tables and plots."""
