// The clocks: the estimate of the server's time, the steps that a frame runs, and their lead.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Lead } from "../src/clock/lead.js";
import { StepClock } from "../src/clock/steps.js";
import { Sync } from "../src/clock/sync.js";
import { Timeline } from "../src/clock/timeline.js";
import { DelayMeter } from "../src/view/delay.js";
import { Playout } from "../src/view/playout.js";
import { Random } from "./random.js";

test("ticks, steps and game time belong together as on the server, exactly", () => {
  const random = new Random(3);
  const rates = [[60, 1], [30000, 1001], [1, 3], [144, 1], [50, 7]] as const;
  for (let i = 0; i < 3000; i++) {
    const [num, den] = rates[random.below(rates.length)]!;
    const [fnum, fden] = rates[random.below(rates.length)]!;
    const line = new Timeline({ num, den }, { num: fnum, den: fden });
    const tick = random.below(2) === 0 ? random.below(1e6) : random.below(2 ** 40);
    const [n, d, fn, fd, t] = [num, den, fnum, fden, tick].map(BigInt) as [bigint, bigint, bigint, bigint, bigint];
    assert.equal(line.gameTime(tick), Number((t * 1000000000n * d) / n) / 1e6);
    const steps = (t * fn * d) / (fd * n);
    assert.equal(line.fixedSteps(tick), Number(steps));
    assert.equal(line.tickAt(line.gameTime(tick)), tick);
    const by = line.stepTick(Number(steps));
    assert.ok(line.fixedSteps(by) >= Number(steps) && (by === 0 || line.fixedSteps(by - 1) < Number(steps)), `step ${steps} at tick ${by}`);
  }
});

test("the server's clock is found behind jitter and drift, and its reading never goes back", () => {
  for (const [offset, drift, jitter] of [[5e6, 0, 0], [-3e5, 100e-6, 8], [1e9, -50e-6, 30]] as const) {
    const random = new Random(5);
    const sync = new Sync();
    const server = (t: number) => offset + t * (1 + drift);
    let last = -Infinity;
    let worst = 0;
    for (let t = 1000; t < 61_000; t += 150) {
      const there = 20 + jitter * random.next() ** 2;
      const back = 20 + jitter * random.next() ** 2;
      sync.sample(t, server(t + there), server(t + there) + 0.1, t + there + back + 0.1);
      const now = t + there + back + 1;
      const reading = sync.server(now);
      if (t > 5000) {
        assert.ok(reading >= last);
        if (t > 40_000) worst = Math.max(worst, Math.abs(reading - server(now)));
      }
      last = reading;
    }
    assert.ok(sync.ready && Math.abs(sync.rtt - 40) < 3 + jitter / 5, `rtt ${sync.rtt}`);
    assert.ok(worst < 0.5 + jitter / 5, `${worst} ms off`);
  }
});

test("times that make no sense are no samples", () => {
  const sync = new Sync();
  for (const [a, b, c, d] of [[5, 1, 2, 4], [1, 3, 2, 4], [0, 0, 9, 5], [0, 0, 0, 20_000]] as const) sync.sample(a, b, c, d);
  assert.equal(sync.ready, false);
  assert.equal(sync.rtt, 0);
});

test("a frame of any length runs each step once, and at most eight", () => {
  const line = new Timeline({ num: 60, den: 1 }, { num: 60, den: 1 });
  const steps = new StepClock();
  const ran: number[] = [];
  for (const to of [1000, 1001, 1010, 1040, 1040, 1030, 1200, 9000, 9017]) {
    steps.advance(line, to);
    assert.ok(steps.count <= line.maxSteps && steps.fraction >= 0 && steps.fraction < 1);
    for (let i = 0; i < steps.count; i++) ran.push(steps.first + i);
  }
  assert.deepEqual(ran, [...new Set(ran)].sort((a, b) => a - b));
  assert.equal(ran.at(-1), 541);
  assert.equal(steps.skipped + ran.length, 541 - 60);
});

test("steps lead by what inputs need to be in time, and no more", () => {
  const line = new Timeline({ num: 60, den: 1 }, { num: 60, den: 1 });
  const lead = new Lead();
  const way = 40;
  const random = new Random(9);
  let at = lead.begin(0, 10_000, 0, line);
  const made: { step: number; at: number }[] = [];
  let late = 0;
  for (let now = 1000 / 60; now < 20_000; now += 1000 / 60) {
    const game = 10_000 + now;
    at = lead.advance(now, at, game, line.stepMs);
    const { step } = line.stepAt(at);
    if (step > (made.at(-1)?.step ?? 0)) {
      lead.made(now, step);
      lead.flush(now, step);
      made.push({ step, at: now + way + 10 * random.next() });
    }
    while (made.length > 1 && made[0]!.at + way <= now) {
      const m = made.shift()!;
      const early = line.gameTime(line.stepTick(m.step)) - (10_000 + m.at);
      if (now > 5000 && early < 0) late++;
      lead.reported(now, line, m.step, early);
    }
  }
  assert.ok(late < 10, `${late} inputs were late`);
  assert.ok(at - 30_000 > way && at - 30_000 < way + 80, `the steps are ${at - 30_000} ms ahead`);
});

test("what is drawn lies behind by what the link has done, and goes on evenly", () => {
  const random = new Random(2);
  const playout = new Playout();
  playout.period = 1000 / 30;
  let tick = 0;
  const arrivals: { at: number; tick: number }[] = [];
  for (let i = 0; i < 600; i++) {
    tick += 2;
    if (random.below(20) !== 0) arrivals.push({ at: (tick * 1000) / 60 + 30 + 25 * random.next(), tick });
  }
  arrivals.sort((a, b) => a.at - b.at);
  let last = 0;
  let frames = 0;
  let uneven = 0;
  for (let now = 100; now < 19_000; now += 1000 / 144) {
    while (arrivals[0] && arrivals[0].at <= now) {
      const a = arrivals.shift()!;
      playout.add(a.tick, (a.tick * 1000) / 60, a.at);
    }
    playout.frame(now, now, 1000 / 144);
    const passed = playout.at - last;
    if (now > 5000) {
      assert.ok(passed >= 0, "it never goes back");
      frames++;
      if (Math.abs(passed - 1000 / 144) > 0.06 * (1000 / 144)) uneven++;
    }
    last = playout.at;
    const m = playout.moment;
    assert.ok(m.from <= m.to && m.alpha >= 0 && m.alpha <= 1);
  }
  assert.ok(playout.delay > 60 && playout.delay < 140, `${playout.delay} ms behind`);
  assert.ok(uneven < frames / 50, `${uneven} of ${frames} frames were uneven`);
  assert.ok(playout.starved < playout.drawn / 50, `${playout.starved} of ${playout.drawn} frames had no neighbour`);
});

test("a page that is busy for a while between two frames draws no further behind", () => {
  for (const busy of [0, 60]) {
    const playout = new Playout();
    playout.period = playout.tickMs = 1000 / 60;
    let now = 100;
    let tick = 0;
    let starved = 0;
    for (let i = 0; i < 1200; i++) {
      // Every second the page is busy, and reads all that has come meanwhile right before the next frame.
      const length = 1000 / 60 + (i % 60 === 0 ? busy : 0);
      now += length;
      for (; ((tick + 1) * 1000) / 60 + 3 <= now; tick++) {
        const came = ((tick + 1) * 1000) / 60 + 3;
        playout.add(tick + 1, ((tick + 1) * 1000) / 60, length > 20 ? now - 1 : came);
      }
      playout.frame(now, now, length);
      if (i === 600) starved = playout.starved;
    }
    assert.ok(playout.delay < 40, `busy for ${busy} ms: ${playout.delay} ms behind`);
    assert.ok(playout.starved - starved < 8, `busy for ${busy} ms: ${playout.starved - starved} frames had no neighbour`);
  }
});

test("an outage is no jitter", () => {
  const meter = new DelayMeter();
  for (let i = 1; i <= 100; i++) meter.add({ tick: i, game: i * 16, at: i * 16 + 20, gap: i === 50 ? 3000 : 16 });
  const d = meter.delay(1600, 1600, 16);
  assert.ok(d > 35 && d < 45, String(d));
});

test("windows cover two seconds, packets a quarter and frames an eighth of one, as the server counts them", () => {
  for (const [hz, window, repeats, most] of [
    [1, 64, 16, 8], [20, 64, 16, 8], [32, 64, 16, 8], [60, 128, 16, 8], [64, 128, 16, 8], [72, 256, 17, 8], [90, 256, 22, 11], [240, 512, 59, 29], [1000, 2048, 250, 125], [5000, 2048, 256, 625],
  ] as const) {
    const line = new Timeline({ num: 20, den: 1 }, { num: hz, den: 1 });
    assert.deepEqual([line.window, line.repeats, line.maxSteps], [window, repeats, most], `${hz} Hz`);
  }
});

test("the lead grows by 5 % while inputs come too late, and by 1 % otherwise", () => {
  for (const [early, want] of [[-40, 50], [40, 10]] as const) {
    const line = new Timeline({ num: 100, den: 1 }, { num: 100, den: 1 });
    const lead = new Lead();
    let at = lead.begin(0, 10_000, 0, line);
    let from = 0;
    for (let now = 10, step = 0; now <= 4000; now += 10) {
      at = lead.advance(now, at, 10_000 + now, line.stepMs);
      if (now === 3000) from = at - now;
      lead.made(now, ++step);
      lead.flush(now, step);
      // From 3 s on inputs need to be 100 ms further ahead, in time or not.
      const need = 10_030 + (now >= 3000 ? 100 : 0);
      (lead as any).samples.add(now, need);
      (lead as any).late = early < 0 && now >= 3000 ? 9 : 0;
    }
    const grown = at - 4000 - from;
    assert.ok(Math.abs(grown - want) < want / 10, `in a second it grew by ${grown} ms, want ${want}`);
  }
});

test("inputs in a row that come too late are counted, and one in time ends the row", () => {
  const line = new Timeline({ num: 100, den: 1 }, { num: 100, den: 1 });
  const lead = new Lead();
  lead.begin(0, 10_000, 0, line);
  const late = [-5, -5, -5, 5, -5].map((early, i) => {
    lead.made(10 * i + 10, i + 1);
    lead.flush(10 * i + 10, i + 1);
    lead.reported(10 * i + 20, line, i + 1, early);
    return (lead as any).late;
  });
  assert.deepEqual(late, [1, 2, 3, 0, 1]);
});

test("the lead is within the server's window, whose inputs are measured, and not below a step and a frame", () => {
  const slow = new Timeline({ num: 1, den: 1 }, { num: 120, den: 1 });
  const fast = new Timeline({ num: 20, den: 1 }, { num: 20, den: 1 });
  for (const [line, need, want] of [[slow, 5000, 256_000 / 120 - 1000], [fast, 5000, 63 * 50], [fast, -1000, 60]] as const) {
    const lead = new Lead();
    let at = lead.begin(0, 0, 20_000, line);
    for (let now = 10; now <= 4000; now += 10) {
      (lead as any).samples.add(now, need);
      at = lead.advance(now, at, now, line.stepMs);
      assert.ok(at - now < want + 1 || need < 0, `at ${now} the lead is ${at - now} ms`);
    }
    assert.ok(Math.abs(at - 4000 - want) < 10, `a lead of ${at - 4000} ms, want ${want}`);
  }
});

test("inputs made before a connection are not measured", () => {
  const line = new Timeline({ num: 20, den: 1 }, { num: 20, den: 1 });
  const lead = new Lead();
  lead.begin(0, 0, 0, line);
  lead.made(50, 1);
  lead.restart();
  lead.made(3000, 60);
  lead.flush(3000, 60);
  lead.reported(3050, line, 60, -50);
  assert.equal((lead as any).samples.p95, 50);
});

test("an input that waited for a page that hung is not measured", () => {
  for (const [wait, want] of [[0, 1], [200, 1], [300, 1], [301, 0], [7000, 0]] as const) {
    const line = new Timeline({ num: 5, den: 1 }, { num: 5, den: 1 });
    const lead = new Lead();
    lead.begin(0, 0, 40, line);
    lead.made(100, 1);
    lead.made(100 + wait, 2);
    lead.flush(100 + wait, 2);
    lead.reported(150 + wait, line, 2, 10);
    assert.equal((lead as any).samples.length, want, `after ${wait} ms`);
  }
});

test("a late repeat of an input is not measured", () => {
  for (const [late, want] of [[300, 1], [400, 0]] as const) {
    const line = new Timeline({ num: 5, den: 1 }, { num: 5, den: 1 });
    const lead = new Lead();
    lead.begin(0, 0, 40, line);
    lead.made(100, 1);
    for (let wait = 0; wait <= late; wait += 100) lead.flush(100 + wait, 1);
    lead.reported(200 + late, line, 1, 10);
    assert.equal((lead as any).samples.length, want, `after ${late} ms`);
  }
});

test("few reports are measured too, so that a lead from a bad moment is corrected", () => {
  const line = new Timeline({ num: 5, den: 1 }, { num: 5, den: 1 });
  const lead = new Lead();
  let at = lead.begin(0, 0, 40, line);
  for (let n = 0; n < 400; n++) {
    const now = n * 50;
    if (n < 20 || n % 4 === 0) (lead as any).samples.add(now, n < 20 ? 1000 : 20); // First late inputs, many at once.
    at = lead.advance(now, at, now, line.stepMs);
    assert.ok((n !== 20 || at - now >= 800) && (n <= 250 || at - now <= 600), `at ${now} the lead is ${at - now} ms`);
  }
});

test("a long stall discards the measurements, because a report may have overtaken its epoch", () => {
  const lead = new Lead();
  for (let i = 0; i < 20; i++) (lead as any).samples.add(i * 50, 1000);
  assert.ok(lead.epochMoved(1000) && (lead as any).samples.length === 0);
});

test("a jump of the clock discards the measurements, and the lead is estimated as at first", () => {
  const line = new Timeline({ num: 10, den: 1 }, { num: 10, den: 1 });
  const lead = new Lead();
  lead.begin(0, 0, 40, line);
  for (let i = 0; i < 20; i++) (lead as any).samples.add(i * 50, 1000);
  lead.clockMoved(80, line);
  assert.deepEqual([(lead as any).samples.length, (lead as any).target], [0, 340]);
});
