"""What a connector finds around it beside its pipes: the names of the environment variables that the host sets."""

from typing import Final

# The instance's non-secret options, as a JSON object.
OPTIONS_VARIABLE: Final = "HEADWATER_OPTIONS"
# A folder for this run where the connector leaves bytes, each file named by its SHA-256.
SPOOL_VARIABLE: Final = "HEADWATER_BLOBS"
# What the runtime understands: `current` or `first`, the revision of the profile. Headwater need not say it.
PROFILE_VARIABLE: Final = "HEADWATER_PROFILE"
