"""The scheduler with a model process that is simulated: jobs end when the test says so."""

import asyncio
import random
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.serve.admission import IN_FLIGHT_TOKENS, Overloaded, Scheduler, TooLong
from glassformer.serve.messages import Inspect
from glassformer.serve.supervisor import Refused, Submitted, Unavailable

SPEED = 1000.0


class Supervisor:
    """Jobs that wait for the test to end them."""

    infos = (SimpleNamespace(id="m", speed=SPEED),)

    def __init__(self):
        self.jobs, self.given = {}, []

    def submit(self, request, on_text=None):
        job = Submitted(request, asyncio.get_running_loop().create_future(), on_text)
        self.given.append(request.text)
        self.jobs[len(self.given)] = job
        return len(self.given), job

    def cancel(self, job_id):
        self.jobs.pop(job_id).result.cancel()

    def end(self, job_id, error=None):
        job = self.jobs.pop(job_id)
        if error:
            job.result.set_exception(error)
        else:
            job.result.set_result(job.request.text)


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


async def compute(scheduler, some, client, deadline_s):
    scheduler.admit(some, client, deadline_s)
    return await scheduler.compute(some, client, deadline_s)


def units(scheduler, texts):
    return [scheduler.unit(Inspect(model="m", text=text), text) for text in texts]


@given(st.integers(0, 1 << 32))
def test_no_request_is_lost_whatever_arrives_ends_fails_or_leaves(seed):
    rng = random.Random(seed)

    async def run():
        supervisor = Supervisor()
        scheduler = Scheduler(supervisor)
        requests = {}
        for i in range(60):
            if rng.random() < 0.5:
                texts = [f"{i}.{k} " + "x" * rng.randrange(2000) for k in range(rng.randrange(1, 6))]
                work = compute(scheduler, units(scheduler, texts), rng.choice("ab"), 1e6)
                requests[asyncio.ensure_future(work)] = texts
            if requests and rng.random() < 0.2:
                rng.choice(list(requests)).cancel()
            if supervisor.jobs and rng.random() < 0.6:
                error = Refused("no") if rng.random() < 0.1 else None
                supervisor.end(rng.choice(list(supervisor.jobs)), error)
            await settle()
        while supervisor.jobs:
            supervisor.end(rng.choice(list(supervisor.jobs)))
            await settle()
        for request, texts in requests.items():
            assert request.done()
            if not request.cancelled() and not request.exception():
                assert request.result() == texts
        assert not scheduler.flows
        assert not scheduler.in_flight
        assert scheduler.n_waiting == 0

    asyncio.run(run())


def test_a_free_place_goes_to_the_client_that_has_received_least():
    async def run():
        supervisor = Supervisor()
        scheduler = Scheduler(supervisor)
        long = "x" * (IN_FLIGHT_TOKENS * 4)  # one fills the batch
        first = asyncio.ensure_future(compute(scheduler, units(scheduler, [long] * 10), "a", 1e6))
        await settle()
        second = asyncio.ensure_future(compute(scheduler, units(scheduler, ["short"]), "b", 1e6))
        await settle()
        assert supervisor.given == [long]
        supervisor.end(1)
        await settle()
        assert supervisor.given[1] == "short"
        for request in (first, second):
            request.cancel()
        await settle()

    asyncio.run(run())


def test_a_request_that_cannot_be_done_in_time_is_refused_at_once():
    async def run():
        scheduler = Scheduler(Supervisor())
        texts = ["x" * 4000] * 10  # about 1,000 tokens each, a second in the simulated speed
        admitted = asyncio.ensure_future(compute(scheduler, units(scheduler, texts), "a", 20))
        await settle()
        assert not admitted.done()
        # Another client gets half of the speed: what is short is admitted although 10 s of work wait.
        short = asyncio.ensure_future(compute(scheduler, units(scheduler, texts[:2]), "b", 9))
        await settle()
        assert not short.done()
        with pytest.raises(Overloaded) as refused:
            await compute(scheduler, units(scheduler, texts[:2]), "a", 9)
        assert refused.value.retry_after_s >= 1
        for request in (admitted, short):
            request.cancel()
        await settle()

    asyncio.run(run())


@pytest.mark.parametrize("speed", [0.1, 1.0])
def test_a_request_that_is_too_long_without_others_is_not_asked_to_come_again(speed):
    async def run():
        scheduler = Scheduler(Supervisor())
        scheduler.speed = speed
        texts = ["x" * 4000] * 10
        with pytest.raises(TooLong):
            scheduler.admit(units(scheduler, texts), "a", 9)
        scheduler.admit(units(scheduler, texts[:7]), "a", 9)  # also after a time of load that has passed
        scheduler.speed = 2.0
        scheduler.admit(units(scheduler, texts), "a", 9)

    asyncio.run(run())


def test_the_deadline_holds_for_what_was_admitted():
    async def run():
        scheduler = Scheduler(Supervisor())
        with pytest.raises(Overloaded):
            await compute(scheduler, units(scheduler, ["a"]), "a", 0.05)
        assert not scheduler.in_flight

    asyncio.run(run())


def test_an_error_of_the_model_process_is_that_of_the_request():
    async def run():
        supervisor = Supervisor()
        scheduler = Scheduler(supervisor)
        request = asyncio.ensure_future(compute(scheduler, units(scheduler, ["a", "b"]), "a", 9))
        await settle()
        supervisor.end(2, Unavailable("crashed"))
        with pytest.raises(Unavailable, match="crashed"):
            await request
        assert not supervisor.jobs

    asyncio.run(run())
