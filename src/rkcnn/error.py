"""The one error a user is meant to read."""


class InputError(ValueError):
    """Something given to rkcnn can't be used; the message is one sentence: what, given, what would work.

    The command line prints it and exits with code 2.
    """
