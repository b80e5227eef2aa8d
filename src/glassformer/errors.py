"""Errors that a user can mend. Everything else that is raised is a bug or a programmer's wrong call."""


class UserError(Exception):
    """What is wrong, with place and value, and how to mend it; shown without a traceback.

    `exit_code` is 1 for a run that failed, 2 for wrong usage or configuration.
    """

    exit_code = 1


class ConfigError(UserError):
    """An option that is unknown, impossible or at odds with another."""

    exit_code = 2


class CorpusError(UserError):
    """A text file that cannot be used as it is."""


class CheckpointError(UserError):
    """A model or run folder that is missing, incomplete, damaged or from another version."""
