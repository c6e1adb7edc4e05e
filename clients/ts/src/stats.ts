import type { Stats } from "./api.js";
import type { ClientImpl } from "./client.js";

/** Computes a client's statistics. */
export function statsOf(c: ClientImpl): Stats {
  const f = c.figures();
  const now = c.frame.now;
  const { time, playout, prediction } = f;
  const applied = f.replica?.tick ?? 0;
  return {
    ...f.counts,
    ...f.traffic,
    transport: c.transport,
    rttMs: time.sync.rtt,
    synced: time.sync.ready,
    serverTick: time.tick,
    appliedTick: applied,
    ageMs: applied > 0 ? time.age(now, applied) : 0,
    snapshots: f.snapshots.complete,
    snapshotRate: f.snapshots.rate(now),
    lost: f.losses.lost,
    heldBack: f.losses.held,
    viewDelayMs: playout.drawn > 0 && f.interpolates ? time.gameTime(now) - playout.at : 0,
    drawn: playout.drawn,
    starved: playout.starved,
    extrapolated: playout.extrapolated,
    viewJumps: playout.jumps,
    inputsMissed: f.inputStatus.missed,
    inputEarlyMs: f.inputStatus.early,
    leadMs: time.lead.on ? time.steps.at - time.game : 0,
    leadJumps: time.lead.jumps,
    mispredicted: prediction.mispredicted,
    mispredictedLate: prediction.mispredictedLate,
    replayed: prediction.replayed,
    spawnsMatched: prediction.spawnsMatched,
    spawnsWithdrawn: prediction.spawnsWithdrawn,
    jumped: time.steps.skipped,
    silentMs: f.link && !f.closed ? Math.max(0, now - f.link.lastArrival) : 0,
    held: f.held.length,
    early: f.held.early,
    calls: f.calls.size,
    lateCalls: f.calls.late,
  };
}
