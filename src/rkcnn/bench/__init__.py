"""How fast networks train and answer, and how much memory that takes, beside other code on the same weights."""
