"""What a connector finds around it beside its messages: environment variables, and bindings of our own."""

from typing import Final

# The instance's non-secret options, as a JSON object.
OPTIONS_VARIABLE: Final = "HEADWATER_OPTIONS"
# A folder for this run where the connector leaves bytes, each file named by its SHA-256.
SPOOL_VARIABLE: Final = "HEADWATER_BLOBS"
# What the runtime understands: `current` or `first`, the revision of the profile. Headwater need not say it.
PROFILE_VARIABLE: Final = "HEADWATER_PROFILE"
# A binding that a connector declares, and Headwater offers, so that both credit `optional_skip_keys`: details of which
# the provider itself says that they are gone. It is no part of the portable profile.
OPTIONAL_SKIPS: Final = "headwater.dev/optional-skip-keys"
