// The parts of a result that the report shows: loadtest/result.schema.json describes all of it. An
// unknown figure is null.

export type Figure = number | null;

export interface Spread { p50: Figure; p90?: Figure; p99: Figure; p999: Figure; max: Figure }

export interface Process {
  cpu_cores: Figure; cores: Figure; memory_bytes: Figure; goroutines: Figure; gc_cycles: Figure; gc_cpu_cores: Figure;
}

export interface Point {
  at_s: number; phase: string; clients: number; joins: number; errors: number;
  snapshot_rate_hz: Figure; snapshot_interval_p99_ms: Figure; snapshot_age_p50_ms: Figure; snapshot_age_p99_ms: Figure;
  call_latency_p50_ms: Figure; call_latency_p99_ms: Figure; server_tick_p99_ms: Figure;
  server_memory_bytes: Figure; generator_memory_bytes: Figure;
}

export interface Result {
  run: {
    command: string[] | null; flags: Record<string, string> | null; tags: Record<string, string> | null; seed: number; begin: string; from_s: number; to_s: number;
    tick_ms: Figure; schedule: string; on_time: boolean; interrupted: boolean;
    machine: { host: string; os: string; arch: string; cores: number; procs: number };
    build: { go: string; module: string; version: string; revision: string; modified: boolean };
  };
  verdict: {
    pass: boolean; valid: boolean; exit: number; reasons: string[] | null;
    thresholds: { threshold: string; metric: string; unit: string; value: Figure; bound: Figure; met: boolean }[] | null;
  };
  clients: { wanted: number; connected: number; failed: number; verifying: number; disconnected: number; drops: number; resumes: number };
  joins: { admitted: number; per_second: Figure; latency_ms: Spread; refused?: Record<string, number>; ended?: Record<string, number> };
  rpc: { sent: number; answered: number; rtt_ms: Spread };
  snapshots: { received: number; rate_hz: { min: Figure; p50: Figure }; interval_ms: Spread; age_ms: Spread; bytes_per_client_per_second: Figure };
  network: {
    rtt_ms: Figure; packets_lost: number; snapshots_held_back: number; chokes: Figure;
    bytes_down: Figure; bytes_up: Figure; packets_down: Figure; packets_up: Figure;
  };
  server: {
    tick_ms: Spread; lateness_ms: Spread; overruns: Figure; dropped_ticks: Figure; tick_rate_hz: Figure; budget_ms: Figure;
    flush_lag_p99_ms: Figure; process: Process;
  };
  generator: { lateness_ms: Spread; process: Process };
  feel: {
    reaction_frames: Spread; mispredicted_per_minute: Figure; mispredicted_late_per_minute: Figure; correction: Spread; view_delay_ms: Spread;
    starved: Figure; hits: number; hits_confirmed: number; inputs: number; inputs_missed: number;
  };
  counts?: Record<string, number>;
  simulated: { network: string; up: Record<string, number>; down: Record<string, number>; rebinds: number } | null;
  converged: boolean;
  worst_ticks?: { tick: number; duration_ms: number; lateness_ms: number; cause: string; system: string; stage: string; system_ms: number }[];
  growth?: { figure: string; unit: string; per_hour: Figure; low: Figure; high: Figure; grows: boolean }[];
  series: { every_s: number; points: Point[] };
}

/** Run is a result with its name, and the percentile curves of its histograms: pairs of 1/(1-p) and milliseconds. */
export interface Run { name: string; result: Result; curves: Record<string, [number, number][]> }

/** Search is the outcome of the command find. */
export interface Search {
  knee: number; broken: number; saturated: string; thresholds: string[]; interrupted: boolean;
  steps: {
    clients: number; met: boolean; reasons: string[] | null; snapshot_rate_hz: Figure; snapshot_age_p99_ms: Figure; server_tick_p99_ms: Figure;
    server_cpu_cores: Figure; generator_cpu_cores: Figure; saturated: string;
  }[];
}

/** Report is the data of the page. */
export interface Report { runs: Run[]; search?: Search }
