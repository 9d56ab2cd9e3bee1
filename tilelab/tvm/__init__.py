"""The few names of TVM that TileLang programs use (`from tilelang import tvm`, `from tvm import
DataType`). There is no TVM here: everything else says so."""

from typing import Any, NoReturn

from tilelab import testing
from tilelab.absent import missing_name
from tilelab.language.dtypes import dtype as DataType  # TVM's name
from tilelab.tvm import target, tirx

__all__ = ["DataType", "target", "testing", "tirx"]


def __getattr__(name: str) -> NoReturn:
    raise missing_name("tvm", name, dict[str, Any].fromkeys(__all__), "tilelab is not built on TVM")
