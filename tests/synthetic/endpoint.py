"""A server with the chat completions of OpenAI, whose answers a test gives."""

import json
import threading
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server:
    """Counts requests, and answers with the function `reply` of a message: a text; (status, headers); or a record."""

    def __init__(self, reply):
        self.reply, self.asked, self.keys, self.bodies = reply, Counter(), set(), []
        self.lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                message = body["messages"][-1]["content"]
                with outer.lock:
                    outer.asked[message] += 1
                    outer.keys.add(self.headers.get("Authorization"))
                    outer.bodies.append(body)
                    n = outer.asked[message]
                found = outer.reply(message, n)  # may wait
                status, headers = (200, {}) if not isinstance(found, tuple) else found
                if isinstance(found, str):
                    choice = {"message": {"content": found}, "finish_reason": "stop"}
                    found = {"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}
                content = found if isinstance(found, bytes) else json.dumps(found).encode()
                if status != 200:
                    content = json.dumps({"error": {"message": f"reason {status}"}}).encode()
                try:
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)
                except OSError:
                    pass  # the client was killed

            def log_message(self, *arguments):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"


@contextmanager
def serving(reply):
    """Run a server while a test runs."""
    server = Server(reply)
    thread = threading.Thread(target=server.http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.http.shutdown()
    server.http.server_close()
    thread.join()
