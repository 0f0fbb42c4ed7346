"""`torch.distributed.flight_recorder`: reads dumps of NCCL's recorder, of which there are none; refused by name."""

from __future__ import annotations

from .._unserved import offer_module as _offer_module

__path__: list[str] = []
_WHY = (
    "{name} is not served: no backend here writes such dumps; errors name operation, number and ranks that are missing"
)
_offer_module(__name__, "fr_trace", "main", "", _WHY)
_offer_module(__name__, "components", "", "", _WHY)
_INSIDE = f"{__name__}.components"
for _name, _functions, _classes in (
    ("builder", "build_db transform_ft", ""),
    ("config_manager", "", "JobConfig"),
    ("loader", "read_dir read_dump", ""),
    ("types", "", "Collective Database EntryState Group MatchInfo MatchState Membership NCCLCall Op Traceback"),
):
    _offer_module(_INSIDE, _name, _functions, _classes, _WHY)
