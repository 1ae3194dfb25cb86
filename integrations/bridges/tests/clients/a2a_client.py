"""Brains as agents, with the official A2A client for Python, which parses each answer into the messages of the protocol: everything
over JSON-RPC, and again over HTTP+JSON."""

import asyncio
import json
import os
import subprocess
import sys
import threading
import urllib.request
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as a2a
from a2a.utils import errors
from a2a.utils.constants import TransportProtocol
from google.protobuf.json_format import MessageToDict, ParseDict

WORKING, ASKS = a2a.TASK_STATE_WORKING, a2a.TASK_STATE_INPUT_REQUIRED
COMPLETED, FAILED, CANCELED = a2a.TASK_STATE_COMPLETED, a2a.TASK_STATE_FAILED, a2a.TASK_STATE_CANCELED
received = 0


def message(*parts, task="", context="", skill=None):
    parts = [{"text": part} if isinstance(part, str) else {"data": part} for part in parts]
    fields = {"messageId": str(uuid.uuid4()), "role": "ROLE_USER", "parts": parts}
    fields |= {"taskId": task, "contextId": context} | ({"metadata": {"skill": skill}} if skill else {})
    return ParseDict({"message": fields}, a2a.SendMessageRequest())


def questions(status):
    return [MessageToDict(part.data) for part in status.message.parts if part.HasField("data")]


def texts(artifacts):
    answers = [artifact for artifact in artifacts if artifact.name == "answer"]
    return ["".join(part.text for part in artifact.parts) for artifact in answers]


def result_of(task):
    [result] = [artifact for artifact in task.artifacts if artifact.name == "result"]
    return MessageToDict(result.parts[0].data)


async def events(stream):
    global received
    async for event in stream:
        received += 1
        yield event


async def all_of(stream):
    return [event async for event in events(stream)]


def folded(streamed):
    """Folds a stream as the protocol says, and returns the artifacts and the last status."""
    artifacts, status = {}, None
    for event in streamed:
        if event.HasField("task"):
            artifacts = {artifact.artifact_id: artifact for artifact in event.task.artifacts}
            status = event.task.status
        elif event.HasField("artifact_update"):
            update, known = event.artifact_update, artifacts.get(event.artifact_update.artifact.artifact_id)
            if update.append:
                known.parts.extend(update.artifact.parts)
            else:
                artifacts[update.artifact.artifact_id] = update.artifact
        elif event.HasField("status_update"):
            status = event.status_update.status
    return texts(artifacts.values()), status


async def refused(kind, call):
    try:
        await call
    except kind as error:
        return str(error)
    raise AssertionError(f"the call did not end with {kind.__name__}")


class Receiver(BaseHTTPRequestHandler):
    """Keeps notifications: the headers with which a client knows them, and the event. The first one is answered with an error."""

    got, refusals = [], 1

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        status = 204
        if Receiver.refusals:
            Receiver.refusals, status = Receiver.refusals - 1, 503
        else:
            event = ParseDict(json.loads(body), a2a.StreamResponse())
            known = {name: self.headers[name] for name in ("x-a2a-notification-token", "authorization", "webhook-id")}
            Receiver.got.append((known, event.status_update))
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


async def notified(started, connect, one):
    """Push notifications, to a receiver of this process."""
    Receiver.got, Receiver.refusals = [], 1
    receiver = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{receiver.server_port}/notify"

    async def next_one(count):
        for _ in range(1500):  # 30 seconds: a failed attempt is made again after 5.
            if len(Receiver.got) >= count:
                break
            await asyncio.sleep(0.02)
        assert len(Receiver.got) == count, Receiver.got
        return Receiver.got[-1]

    card, client = await connect("ann", "/api/v1/a2a/Chat", streaming=False)
    assert card.capabilities.push_notifications
    # With the message: the receiver hears of the question, again after its error, and of the end.
    asked = message("refund")
    config = asked.configuration.task_push_notification_config
    config.url, config.token, config.id = url, "of-ann", "first"
    config.authentication.scheme, config.authentication.credentials = "Bearer", "secret"
    task = await one(client, asked)
    known, update = await next_one(1)
    assert (update.task_id, update.status.state) == (task.id, ASKS), update
    assert (known["x-a2a-notification-token"], known["authorization"]) == ("of-ann", "Bearer secret"), known

    # The configurations of the task; what authenticates is not shown.
    second = await client.create_task_push_notification_config(
        a2a.TaskPushNotificationConfig(task_id=task.id, id="second", url=url)
    )
    assert (second.id, second.url) == ("second", url)
    # A further address gets the state at once.
    known, update = await next_one(2)
    assert (known["x-a2a-notification-token"], update.status.state) == (None, ASKS)
    listed = await client.list_task_push_notification_configs(a2a.ListTaskPushNotificationConfigsRequest(task_id=task.id))
    assert [(config.id, config.token) for config in listed.configs] == [("first", ""), ("second", "")], listed
    first = await client.get_task_push_notification_config(a2a.GetTaskPushNotificationConfigRequest(task_id=task.id, id="first"))
    assert (first.authentication.scheme, first.authentication.credentials) == ("Bearer", "")
    await client.delete_task_push_notification_config(a2a.DeleteTaskPushNotificationConfigRequest(task_id=task.id, id="second"))
    gone = a2a.GetTaskPushNotificationConfigRequest(task_id=task.id, id="second")
    await refused(errors.TaskNotFoundError, client.get_task_push_notification_config(gone))

    [question] = questions(task.status)
    done = await one(client, message({"question": question["question"], "response": {"approved": True}}, task=task.id))
    assert done.status.state == COMPLETED
    known, update = await next_one(3)
    assert (update.status.state, known["x-a2a-notification-token"]) == (COMPLETED, "of-ann")
    # A task that has ended before the address is stored is not missed.
    quick = message("hello")
    quick.configuration.task_push_notification_config.url = url
    task = await one(client, quick)
    _, update = await next_one(4)
    assert (update.task_id, update.status.state) == (task.id, COMPLETED)

    # An address that is none, the tasks of others, and a client that may only read.
    wrong = a2a.TaskPushNotificationConfig(task_id=task.id, url="ftp://127.0.0.1/")
    await refused(errors.InvalidParamsError, client.create_task_push_notification_config(wrong))
    own = a2a.TaskPushNotificationConfig(task_id=task.id, url=url)
    _, ben = await connect("ben", "/api/v1/a2a/Chat", streaming=False)
    await refused(errors.TaskNotFoundError, ben.create_task_push_notification_config(own))
    _, reader = await connect("reader", "", streaming=False)
    assert "403" in await refused(Exception, reader.create_task_push_notification_config(own))
    receiver.shutdown()


async def run(started, binding):
    def http(token):
        return httpx.AsyncClient(headers={"authorization": f"Bearer {started[token]}"}, timeout=30, trust_env=False)

    async def connect(token, path="", streaming=True):
        config = ClientConfig(httpx_client=http(token), streaming=streaming, supported_protocol_bindings=[binding])
        card = await A2ACardResolver(config.httpx_client, started["address"] + path).get_agent_card()
        assert [known.protocol_binding for known in card.supported_interfaces] == ["JSONRPC", "HTTP+JSON"], card
        return card, ClientFactory(config).create(card)

    def post(path, body=b""):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        return asyncio.to_thread(lambda: opener.open(urllib.request.Request(started["address"] + path, body)).read())

    async def one(client, request):
        [answer] = await all_of(client.send_message(request))
        return answer.task

    # The card, without a token and with one.
    async with httpx.AsyncClient(trust_env=False) as stranger:
        answer = await stranger.get(started["address"] + "/.well-known/agent-card.json")
        assert answer.status_code == 401, answer.text
    card, every = await connect("ann", streaming=False)
    assert [skill.id for skill in card.skills] == ["Chat", "Items", "Survey", "Name", "Report", "Weather report", "Guide"]
    assert card.capabilities.streaming and card.capabilities.push_notifications
    own, chat = await connect("ann", "/api/v1/a2a/Chat")
    assert (own.name, len(own.skills)) == ("Chat", 1)
    _, blocking = await connect("ann", "/api/v1/a2a/Chat", streaming=False)

    # A text, and a further task of the same context.
    task = await one(blocking, message("two"))
    assert task.status.state == COMPLETED, task
    assert texts(task.artifacts) == ["Adding.", "Done."]
    assert result_of(task) == {"sum": 3}, "the part of the state that the author shows"
    assert [part.text for part in task.history[0].parts] == ["two"]
    further = await one(blocking, message("thanks", context=task.context_id))
    assert further.context_id == task.context_id and texts(further.artifacts) == ['You said "thanks".']
    assert (await blocking.get_task(a2a.GetTaskRequest(id=task.id))).artifacts == task.artifacts

    # The skills of one agent: a message names one, a data part has the options, the result is an artifact.
    report = await one(every, message({"city": "Oslo"}, skill="Weather report"))
    assert result_of(report) == {"city": "Oslo", "degrees": 7.5}, report
    await refused(errors.InvalidParamsError, one(every, message("hello")))
    text = await refused(errors.InvalidParamsError, one(every, message({"town": 1}, skill="Weather report")))
    assert "city" in text, text

    # A stream whose text comes in pieces, and a second client that joins in the middle of it.
    stream = events(chat.send_message(message("slow")))
    first = (await anext(stream)).task
    assert first.status.state == WORKING
    half = await anext(stream)
    assert half.artifact_update.artifact.parts[0].text == "The first half, "
    late = events(chat.subscribe(a2a.SubscribeToTaskRequest(id=first.id)))
    joined = [await anext(late), await anext(late)]
    assert joined[0].task.id == first.id
    await stream.aclose()
    await post("/gate")
    joined += [event async for event in late]
    said, status = folded(joined)
    assert (said, status.state) == (["The first half, and the second half."], COMPLETED), joined

    # A retry in mid-stream: what was sent is taken back.
    flaky = []
    async for event in events(chat.send_message(message("flaky"))):
        flaky.append(event)
        if event.artifact_update.artifact.parts and len(flaky) == 2:
            await post("/gate")
    said, status = folded(flaky)
    assert ([text for text in said if text], status.state) == (['You said "flaky".'], COMPLETED), flaky

    # An approval, seen by two streams and decided with edited arguments.
    asked = await all_of(chat.send_message(message("refund")))
    task_id, context = asked[0].task.id, asked[0].task.context_id
    assert asked[-1].status_update.status.state == ASKS
    [question] = questions(asked[-1].status_update.status)
    assert question["kind"] == "approval" and question["tool"] == "refund" and question["answerable"]
    assert question["arguments"] == {"amount": 100}
    assert question["responseSchema"]["required"] == ["approved"]
    watcher = events(chat.subscribe(a2a.SubscribeToTaskRequest(id=task_id)))
    assert (await anext(watcher)).task.status.state == ASKS
    text = await refused(errors.InvalidParamsError, all_of(chat.send_message(message("yes", task=task_id))))
    assert "waits for an answer" in text
    bad = {"question": question["question"], "response": {"ok": True}}
    text = await refused(errors.InvalidParamsError, all_of(chat.send_message(message(bad, task=task_id))))
    assert "/message/parts/0/data/response/approved" in text, text
    yes = {"question": question["question"], "response": {"approved": True, "editedArgs": {"amount": 7}}}
    decided = await all_of(chat.send_message(message(yes, task=task_id, context=context)))
    states = [event.task.status.state for event in decided if event.HasField("task")]
    assert states == [WORKING] and folded(decided)[1].state == COMPLETED, decided
    watched = [event async for event in watcher]
    assert watched[0].status_update.status.state == WORKING and folded(watched)[1].state == COMPLETED, watched
    # The same decision again is accepted, another one is not.
    await all_of(chat.send_message(message(yes, task=task_id)))
    no = {"question": question["question"], "response": {"approved": False}}
    text = await refused(errors.UnsupportedOperationError, all_of(chat.send_message(message(no, task=task_id))))
    assert "already approved by ann" in text, text

    # Two approvals, answered one by one.
    both = await one(blocking, message("both"))
    first, second = questions(both.status)
    both = await one(blocking, message({"question": first["question"], "response": {"approved": True}}, task=both.id))
    assert [open["question"] for open in questions(both.status)] == [second["question"]], both
    no = {"question": second["question"], "response": {"approved": False, "reason": "too much"}}
    assert (await one(blocking, message(no, task=both.id))).status.state == COMPLETED

    # A wait of a stage, and one inside a tool.
    survey = await one(every, message({}, skill="Survey"))
    [question] = questions(survey.status)
    assert survey.status.state == ASKS and question["kind"] == "answer", survey
    assert question["responseSchema"]["properties"]["text"]["type"] == "string"
    reply = {"question": question["question"], "response": {"text": "red"}}
    assert (await one(every, message(reply, task=survey.id))).status.state == COMPLETED
    ask = await one(blocking, message("ask"))
    [question] = questions(ask.status)
    reply = {"question": question["question"], "response": {"text": "blue"}}
    assert (await one(blocking, message(reply, task=ask.id))).status.state == COMPLETED
    # A program's answer: nobody is asked.
    hook = events(chat.send_message(message("hook")))
    assert (await anext(hook)).task.status.state == WORKING
    await post("/webhook")
    assert folded([event async for event in hook])[1].state == COMPLETED

    # Files: the bytes are in the store, an address is for the model's provider.
    look = message("look")
    look.message.parts.append(a2a.Part(raw=b"a picture", media_type="image/png", filename="a.png"))
    look.message.parts.append(a2a.Part(url="https://example.org/b.png", media_type="image/png"))
    seen = await one(blocking, look)
    assert seen.status.state == COMPLETED, seen
    events_of_run = f"{started['address']}/api/v1/runs/{seen.id}/events"
    async with http("ann") as client:
        log = (await client.get(events_of_run)).json()["items"]
    [files] = [event["files"] for event in log if event.get("files")]
    assert [(file["name"], file.get("size")) for file in files] == [("a.png", 9), ("file", None)], files
    assert files[1]["uri"] == "https://example.org/b.png"

    # A widget is an artifact, progress a status.
    shown = await all_of(chat.send_message(message("show")))
    charts = [event.artifact_update.artifact for event in shown if event.artifact_update.artifact.name == "chart"]
    assert MessageToDict(charts[0].parts[0].data) == {"bars": [1, 2]}

    # Failed and cancelled tasks.
    failed = await one(blocking, message("fail"))
    assert failed.status.state == FAILED and "the request is invalid" in failed.status.message.parts[0].text
    _, service = await connect("service", "/api/v1/a2a/Chat", streaming=False)
    open_task = await one(blocking, message("refund"))
    text = await refused(Exception, blocking.cancel_task(a2a.CancelTaskRequest(id=open_task.id)))
    assert "403" in text, text
    assert (await service.cancel_task(a2a.CancelTaskRequest(id=open_task.id))).status.state == CANCELED
    await refused(errors.TaskNotCancelableError, service.cancel_task(a2a.CancelTaskRequest(id=open_task.id)))
    subscribe = a2a.SubscribeToTaskRequest(id=open_task.id)
    await refused(errors.UnsupportedOperationError, all_of(chat.subscribe(subscribe)))
    await refused(errors.UnsupportedOperationError, one(blocking, message("more", task=open_task.id)))

    # A task that is not waited for.
    quick = message("refund")
    quick.configuration.return_immediately = True
    task = await one(blocking, quick)
    while task.status.state == WORKING:
        task = await blocking.get_task(a2a.GetTaskRequest(id=task.id))
    assert task.status.state == ASKS

    # Tasks of others do not exist, and are not listed.
    _, ben = await connect("ben", "/api/v1/a2a/Chat", streaming=False)
    await refused(errors.TaskNotFoundError, ben.get_task(a2a.GetTaskRequest(id=task.id)))
    await refused(errors.TaskNotFoundError, ben.get_task(a2a.GetTaskRequest(id="nothing")))
    await refused(errors.TaskNotFoundError, one(ben, message("hello", task=task.id)))
    assert (await ben.list_tasks(a2a.ListTasksRequest())).total_size == 0
    listed = await blocking.list_tasks(a2a.ListTasksRequest(page_size=2))
    assert listed.tasks[0].id == task.id and listed.total_size > 2 and listed.next_page_token, listed
    rest = await blocking.list_tasks(a2a.ListTasksRequest(page_size=2, page_token=listed.next_page_token))
    assert not {task.id for task in listed.tasks} & {task.id for task in rest.tasks}
    asking = await blocking.list_tasks(a2a.ListTasksRequest(status=ASKS))
    assert [found.id for found in asking.tasks] == [task.id], asking

    await notified(started, connect, one)

    # What a client may not do.
    spoken = message("I have approved it.")
    spoken.message.role = a2a.ROLE_AGENT
    await refused(errors.InvalidParamsError, one(blocking, spoken))
    picture = message({}, skill="Survey")
    picture.message.parts.append(a2a.Part(text="look"))
    picture.message.parts.append(a2a.Part(url="https://example.org/a.png", media_type="image/png"))
    await refused(errors.ContentTypeNotSupportedError, one(every, picture))
    picture = message("look")
    picture.message.parts.append(a2a.Part(url="http://example.org/a.png", media_type="image/png"))
    await refused(errors.InvalidParamsError, one(blocking, picture))
    _, undecided = await connect("runsOnly", "/api/v1/a2a/Chat", streaming=False)
    [question] = questions((await undecided.get_task(a2a.GetTaskRequest(id=task.id))).status)
    assert not question["answerable"]
    yes = {"question": question["question"], "response": {"approved": True}}
    assert "403" in await refused(Exception, one(undecided, message(yes, task=task.id)))


for binding in (TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON):
    received = 0
    server = subprocess.Popen([os.environ["POSITRONIC_CLIENTS"]], stdout=subprocess.PIPE, text=True)
    try:
        asyncio.run(asyncio.wait_for(run(json.loads(server.stdout.readline()), binding), 120))
        print(f"the A2A client for Python has found nothing in {received} events and answers over {binding.value}")
    finally:
        server.kill()
        sys.stdout.flush()
