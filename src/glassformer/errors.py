"""Errors that a user can fix. Any other exception is a bug, or an incorrect call by a programmer."""


class UserError(Exception):
    """Error with a message that states the problem, its location and value, and how to fix it. The command line shows
    it without a traceback.

    `exit_code` is 1 for a failed run, 2 for wrong usage or configuration.
    """

    exit_code = 1


class ConfigError(UserError):
    """An option is unknown, invalid or in conflict with another."""

    exit_code = 2


class ColumnsError(ConfigError):
    """The columns of a file are not known. `keys` is an option that names them, if there is a suggestion."""

    def __init__(self, message: str, keys: str = ""):
        super().__init__(message)
        self.keys = keys


class CorpusError(UserError):
    """A corpus file cannot be used."""


class CheckpointError(UserError):
    """A model or run folder is missing, incomplete, damaged or from another version."""


class NonFiniteError(UserError):
    """The outputs of a model are NaN or infinite, for example because its training diverged."""


NON_FINITE = (
    "the model's outputs are not finite numbers (NaN or infinity): its training diverged.\n"
    "  Train it again with a lower --lr."
)


class FormatVersionError(CheckpointError):
    """A model or run folder has another version of the format."""
