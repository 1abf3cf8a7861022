"""A webhook receiver in one file without dependencies, for Python 3.9 or newer: WEBHOOK_SECRET=... python3 receiver.py."""

import base64
import hashlib
import hmac
import json
import os
import queue
import re
import sys
import threading
import time
import uuid
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

SECRET = os.environ.get("WEBHOOK_SECRET") or sys.exit("WEBHOOK_SECRET is not set")
HOST = os.environ.get("HOST", "127.0.0.1")
PORT = int(os.environ.get("PORT", "8080"))
INBOX = Path(os.environ.get("INBOX", "inbox"))
API_KEY = os.environ.get("API_KEY")
API_URL = os.environ.get("API_URL", "http://127.0.0.1:3000")

# The largest accepted difference between the timestamp of a request and the present time. The service signs each attempt when it sends
# it, so a request with an older timestamp may be a copy that an attacker sends again.
TOLERANCE_SECONDS = 300
MAX_BYTES = 1_000_000

KEY = base64.b64decode(SECRET[len("whsec_"):]) if SECRET.startswith("whsec_") else SECRET.encode()


def verified(headers, body):
    """Returns the delivery's id if the timestamp is recent and a signature with our secret matches id, timestamp and body, or else None."""
    delivery_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not re.fullmatch(r"\w+", delivery_id, re.ASCII) or not re.fullmatch(r"\d{1,12}", timestamp, re.ASCII):
        return None
    if abs(time.time() - int(timestamp)) > TOLERANCE_SECONDS:
        return None
    digest = hmac.new(KEY, f"{delivery_id}.{timestamp}.".encode() + body, hashlib.sha256).digest()
    expected = b"v1," + base64.b64encode(digest)
    # For a day after a rotation of the secret, there are two signatures. One of them must match.
    given = headers.get("webhook-signature", "").encode("latin-1").split(b" ")
    return delivery_id if any(hmac.compare_digest(expected, entry) for entry in given) else None


def keep(delivery_id, body):
    """Stores a delivery durably. Returns False if it is already stored. The file name is the delivery id, so no second file is created."""
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


def call_back(delivery_id):
    """Calls the API: writes a note on a new prospect. A repeated request has the same Idempotency-Key, so it writes no second note. The
    file `<id>.done` is written at the end. If it is missing, the next start of this program calls the API again."""
    delivery = json.loads((INBOX / f"{delivery_id}.json").read_bytes())
    while delivery["event"] == "prospect.created" and not delivery.get("test"):
        url = f"{API_URL}/api/prospects/{delivery['data']['prospect']['id']}/notes"
        body = json.dumps({"body": "The CRM has this prospect."}).encode()
        headers = {"Authorization": f"Bearer {API_KEY}", "Content-Type": "application/json", "Idempotency-Key": delivery_id}
        seconds = 5
        try:
            urlopen(Request(url, body, headers), timeout=30).close()
            break
        except HTTPError as error:
            seconds = int(error.headers.get("Retry-After", seconds))
            if error.code < 500 and "Retry-After" not in error.headers:
                print(delivery_id, error, file=sys.stderr, flush=True)
                return
        except (OSError, HTTPException):
            pass
        time.sleep(seconds)
    (INBOX / f"{delivery_id}.done").touch()


waiting = queue.SimpleQueue()


def call_back_for_all():
    """Calls the API for one delivery after another: first for stored deliveries without `<id>.done`, then for new ones."""
    for file in INBOX.glob("*.json"):
        if not file.with_suffix(".done").exists():
            call_back(file.stem)
    while True:
        call_back(waiting.get())


class Receiver(BaseHTTPRequestHandler):
    # Maximum number of seconds to wait for data of a request.
    timeout = 15

    def do_POST(self):
        """Only stores the delivery, because the service waits at most 10 seconds for the answer. The delivery is handled later."""
        length = self.headers.get("Content-Length", "")
        if not re.fullmatch(r"\d{1,9}", length, re.ASCII):
            return self.answer(411)
        if int(length) > MAX_BYTES:
            return self.answer(413)
        # Keep the raw bytes, because JSON that is parsed and written again may have other bytes and then another signature.
        body = self.rfile.read(int(length))
        delivery_id = verified(self.headers, body)
        if delivery_id is None:
            return self.answer(401)
        try:
            is_new = keep(delivery_id, body)
        except OSError as error:
            print(f"{delivery_id} is not stored: {error}", file=sys.stderr, flush=True)
            # After this answer, the service sends the delivery again later.
            return self.answer(500)
        if is_new:
            print(delivery_id, self.headers.get("X-Service-Event"), flush=True)
            waiting.put(delivery_id)
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        self.end_headers()

    def log_request(self, *_):
        pass


if __name__ == "__main__":
    INBOX.mkdir(parents=True, exist_ok=True)
    server = ThreadingHTTPServer((HOST, PORT), Receiver)
    if API_KEY:
        threading.Thread(target=call_back_for_all, daemon=True).start()
    print(f"listening on http://{HOST}:{server.server_address[1]}", flush=True)
    server.serve_forever()
