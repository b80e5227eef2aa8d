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


class NonFiniteError(UserError):
    """A model whose outputs are NaN or infinite, as those of a model whose training diverged."""


NON_FINITE = (
    "the model's outputs are not finite numbers (NaN or infinity): its training diverged.\n"
    "  Train it again with a lower --lr."
)


class FormatVersionError(CheckpointError):
    """A model or run folder written in another version of the format."""
