# ruff: noqa: D102 - the public methods of the response class are API operations; their names say which.
"""The keys of log groups that exist already, which moto's CloudWatch Logs does not change."""

from moto.logs.models import LogGroup
from moto.logs.responses import LogsResponse

from ..protocol.service import refuse


class KeyedLogs(LogsResponse):
    """CloudWatch Logs' API: the change of a group's key is ours, the rest moto's."""

    def associate_kms_key(self) -> str:
        self._group().kms_key_id = self._get_param("kmsKeyId")
        return ""

    def disassociate_kms_key(self) -> str:
        self._group().kms_key_id = None
        return ""

    def _group(self) -> LogGroup:
        name = self._get_param("logGroupName")
        if name not in self.logs_backend.groups:
            raise refuse("ResourceNotFoundException", "The specified log group does not exist.")
        return self.logs_backend.groups[name]
