"""Whole tables: which runs are still to do, how long they take, and who does them."""
