"""A worker with nothing but Python's standard library, 3.9 or later:
python3 examples/plain_worker.py [http://127.0.0.1:7700]
"""

import json
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from threading import Event, Lock, Thread, Timer
from urllib.error import HTTPError
from urllib.request import Request, urlopen

server = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:7700"
key = os.environ.get("SLUICE_API_KEY")  # needs the scope `worker`; absent: the server has no keys
authorization = {"authorization": f"Bearer {key}"} if key else {}
offer = {"task_types": ["count-words"], "capacity": 10}
running = {}  # lease: (task_id, stop)
worker = {}  # what register answered
registering = Lock()
stopping = Event()
leaving = Event()
# Refusals that another try would not change.
final = {"lease_lost", "payload_too_large", "invalid_request", "invalid_json"}


class Stop(Event):
    why = None

    def because(self, why):
        self.why = self.why or why
        self.set()


def count_words(parameters, stop):
    """Your work goes here. This counts words, and takes as many seconds as it is told to."""
    if stop.wait(parameters.get("seconds", 0)):
        raise InterruptedError("told to stop")
    return {"words": len(parameters["text"].split(" "))}


def post(path, body):
    """None when no answer of Sluice came: worth another try. A proxy may answer in its place."""
    data = json.dumps(body).encode()
    headers = {"content-type": "application/json", **authorization}
    request = Request(f"{server}/internal/workers/{path}", data, headers)
    try:
        with urlopen(request, timeout=10) as response:
            return json.load(response)
    except HTTPError as error:
        return problem(error)
    except (OSError, HTTPException, ValueError):
        return None


def problem(error):
    try:
        answer = json.load(error)
        return answer if answer["type"] == "/docs#" + answer["code"] else None
    except (OSError, HTTPException, ValueError, TypeError, LookupError):
        return None


def until_answered(send, *args):
    while (answer := send(*args)) is None:
        time.sleep(1)
    return answer


def register(known):
    """Once, however many threads find out that the server does not know this worker."""
    global worker
    with registering:
        if worker is known:
            worker = until_answered(post, "register", offer)
            print("registered as", worker["worker_id"], flush=True)


def call(name, body):
    known = worker
    answer = post(f"{known['worker_id']}/{name}", body)
    if answer is None or "code" not in answer:
        return answer
    if answer["code"] in final:
        raise RuntimeError(f"{answer['code']}: {answer['detail']}")
    if answer["code"] == "worker_unknown":
        # The server forgot this worker. Under its new id its leases stay good.
        register(known)
    return None


def run(task, stop):
    held = {"task_id": task["task_id"], "lease": task["lease"]}
    timer = Timer(task["timeout_seconds"], stop.because, ["TIMEOUT"])
    timer.start()
    try:
        result = count_words(task["parameters"], stop)
        until_answered(call, "result", {**held, "status": "completed", "result": result})
    except Exception as error:
        failure = {"code": stop.why or "ERROR", "message": repr(error)}
        # Of a cancelled task the server only wants to know that it has stopped.
        if stop.why == "CANCELLED":
            call("release", {"tasks": [held]})
        else:
            until_answered(call, "result", {**held, "status": "failed", "error": failure})
    finally:
        timer.cancel()
        del running[task["lease"]]
    print(task["task_id"], stop.why or "ended", flush=True)


def heed(answer):
    for task_id, stop in list(running.values()):
        if task_id in answer["cancelled"] + answer.get("lost", []):
            stop.because("CANCELLED")
    if answer.get("drain") or answer.get("should_drain"):
        stopping.set()


def beat():
    """Whoever is silent for longer than its lease loses its tasks to others."""
    while not leaving.wait(worker["heartbeat_interval_ms"] / 1000):
        held = [(lease, task_id) for lease, (task_id, _) in list(running.items())]
        status = "draining" if stopping.is_set() else "active"
        load = {"current_load": len(held), "current_tasks": [task_id for _, task_id in held]}
        # Should it have to register again, its tasks are its own by their leases.
        load["leases"] = [lease for lease, _ in held]
        if answer := call("heartbeat", {"status": status, **load}):
            heed(answer)


def finish(number, _frame):
    stopping.set()
    signal.signal(number, signal.SIG_DFL)  # a second one ends it at once


signal.signal(signal.SIGTERM, finish)
signal.signal(signal.SIGINT, finish)
register(worker)
heart = Thread(target=beat, daemon=True)
heart.start()
with ThreadPoolExecutor(offer["capacity"]) as pool:  # at its end it waits for what runs
    while not stopping.is_set():
        free = offer["capacity"] - len(running)
        answer = call("poll", {"available_capacity": free, "wait_seconds": 2}) if free else None
        if answer is None:
            time.sleep(1 if free else 0.02)
            continue
        for task in answer["tasks"]:
            running[task["lease"]] = (task["task_id"], stop := Stop())
            pool.submit(run, task, stop)
        heed(answer)
leaving.set()
heart.join()
post(f"{worker['worker_id']}/deregister", {})
