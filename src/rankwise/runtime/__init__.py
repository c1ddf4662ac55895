"""Threads, memory and progress."""
