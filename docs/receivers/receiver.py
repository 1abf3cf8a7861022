"""A webhook receiver in one file, without dependencies: WEBHOOK_SECRET=... python3 receiver.py, on Python 3.9 or newer."""

import base64
import hashlib
import hmac
import os
import re
import sys
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

SECRET = os.environ.get("WEBHOOK_SECRET") or sys.exit("WEBHOOK_SECRET is not set")
HOST = os.environ.get("HOST", "127.0.0.1")
PORT = int(os.environ.get("PORT", "8080"))
INBOX = Path(os.environ.get("INBOX", "inbox"))

# An attempt is signed when it is made: one that is older was kept by somebody.
TOLERANCE_SECONDS = 300
MAX_BYTES = 1_000_000

KEY = base64.b64decode(SECRET[len("whsec_"):]) if SECRET.startswith("whsec_") else SECRET.encode()


def verified(headers, body):
    """The delivery's id, when its bytes, id and time are signed with our secret; otherwise None."""
    delivery_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not re.fullmatch(r"\w+", delivery_id, re.ASCII) or not re.fullmatch(r"\d{1,12}", timestamp, re.ASCII):
        return None
    if abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
        return None
    digest = hmac.new(KEY, f"{delivery_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    expected = b"v1," + base64.b64encode(digest)
    # While the secret is being rotated there are two signatures: one of them is ours.
    given = headers.get("webhook-signature", "").encode("latin-1").split(b" ")
    return delivery_id if any(hmac.compare_digest(expected, entry) for entry in given) else None


def keep(delivery_id, body):
    """Keeps a delivery once, however often it comes, and for good: False when it was there. Stands for a table with a unique key."""
    draft = INBOX / f".{delivery_id}.{uuid.uuid4()}"
    with open(draft, "xb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(draft, INBOX / f"{delivery_id}.json")
        return True
    except FileExistsError:
        return False
    finally:
        draft.unlink()


class Receiver(BaseHTTPRequestHandler):
    # Seconds that a sender may let us wait.
    timeout = 15

    def do_POST(self):
        """What is kept is worked on later, by whatever reads the inbox: the sender waits 10 seconds at most."""
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch(r"\d{1,9}", length, re.ASCII):
            return self.answer(411)
        if int(length) > MAX_BYTES:
            return self.answer(413)
        # The bytes as they came: parsed and written again they would have another signature.
        body = self.rfile.read(int(length))
        delivery_id = verified(self.headers, body)
        if delivery_id is None:
            return self.answer(401)
        if keep(delivery_id, body):
            print(delivery_id, self.headers.get("X-Service-Event"), flush=True)
        # Any answer but 2xx, or none, and the delivery comes again.
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        self.end_headers()

    def log_request(self, *_):
        pass


if __name__ == "__main__":
    INBOX.mkdir(parents=True, exist_ok=True)
    server = ThreadingHTTPServer((HOST, PORT), Receiver)
    print(f"listening on http://{HOST}:{server.server_address[1]}", flush=True)
    server.serve_forever()
