"""Starts one server, prints where it is, and keeps it until killed."""

import sys
import time
from contextlib import ExitStack

from examples.http_ledger import running_http_ledger
from tests.support.postgres import running_postgres
from tests.support.temporal import running_temporal

with ExitStack() as stack:
    match sys.argv[1]:
        case "http":
            print(stack.enter_context(running_http_ledger()).url)
        case "postgres":
            print("server", stack.enter_context(running_postgres()).folder)
        case "temporal":
            print("server", stack.enter_context(running_temporal()))
    time.sleep(60)
