"""How run times are taken: as the configuration says, but for what was said in the call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ciwrap.config.loading import timing_settings
from ciwrap.structs import replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ciwrap.config import Config
    from ciwrap.config.settings import TimingSettings


def chosen_timing(config: Config | None, given: Mapping[str, Any]) -> TimingSettings:
    """given: by name; None for what nobody said. The confidence is set in what is returned."""
    configured = timing_settings() if config is None else config.timing
    said = {name: value for name, value in given.items() if value is not None}
    settings = replace(configured, **said)
    return replace(settings, confidence=settings.confidence_used)
