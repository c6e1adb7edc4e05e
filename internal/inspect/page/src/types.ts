// The answers of the admin listener's API: see /api for the list of pages. Times are in nanoseconds.

export interface Quantiles {
  p50_ns: number;
  p95_ns: number;
  p99_ns: number;
  max_ns: number;
}

export interface Window {
  span_ns: number;
  ticks: number;
  overruns: number;
  dropped: number;
  tick: Quantiles;
  lateness: Quantiles;
}

export interface Overview {
  game: string;
  version: string;
  instance: string;
  room: string;
  time: string;
  uptime_seconds: number;
  budget_ns: number;
  rate_hz: number;
  windows: Window[];
  overload: string;
  ladder: Ladder;
  ready: string;
  note: string;
  rooms: number;
  write: boolean;
  ring_ns: number;
  /** The server's id in its cluster; empty without one. */
  cluster: string;
  memory: { heap_bytes: number; total_bytes: number; goroutines: number; gc_cycles: number; gc_cpu_seconds: number; cpu_seconds: number };
}

/** Ladder tells why a room is at its level of overload. */
export interface Ladder {
  room: string;
  level: string;
  for_ns: number;
  ago_ns: number;
  next_ns: number;
  measures: { name: string; now: number; hot: number; calm: number; raise: number }[];
  text: string;
}

export interface Traces {
  room: string;
  covers_ns: number;
  traces: { tick: number; name: string; bytes: number }[];
}

export interface Room {
  name: string;
  kind: string;
  state: string;
  clients: number;
  seats: number;
  max: number;
  locked: boolean;
  rate_hz: number;
  ticks: number;
  overruns: number;
  dropped: number;
  tick_p50_ns: number;
  tick_p99_ns: number;
  late_p99_ns: number;
  age_ns: number;
}

export interface Rooms {
  rooms: Room[];
  total: number;
}

export interface SystemCost {
  name: string;
  stage: string;
  cost_ns: number;
  runs: number;
}

export type Cause = "" | "system" | "gc" | "stage" | "behind" | "host";

export interface Tick {
  tick: number;
  start_ns: number;
  lateness_ns: number;
  duration_ns: number;
  cause: Cause;
  blame: SystemCost;
  stages_ns: number[];
  systems: SystemCost[];
  others: { systems: number; cost_ns: number };
  dropped: number;
  fixed_steps: number;
  overload: number;
  clients: number;
  arrivals: number;
  queues: number[];
  work: number;
  sender: { client: number; method: string; cost_ns: number };
  gc: { cycles: number; cpu_ns: number; pause_ns: number };
}

export interface Ticks {
  budget_ns: number;
  ticks: Tick[];
}

export interface LoopSystem {
  name: string;
  groups?: string[];
  place: string;
  priority: number;
  before?: string[];
  after?: string[];
  periodic?: boolean;
  period_ns?: number;
  catch_up?: number;
  scaled?: boolean;
  gap?: boolean;
  conditional?: boolean;
  skipped?: boolean; // its condition was false when it was last due
  once?: boolean;
  critical?: boolean;
  pending?: boolean;
  disabled?: boolean;
  off?: string[]; // the disabled ones among the system and its groups
  quarantine_ticks?: number;
  panics?: number;
  cost?: { runs: number; mean_ns: number; p50_ns: number; p99_ns: number };
}

export interface Loop {
  tick: number;
  rate: string;
  fixed_rate: string;
  time_scale?: string;
  quarantined: number;
  stages: { stage: string; systems: LoopSystem[] }[];
}

export interface Client {
  client: number;
  subject: string;
  addr: string;
  transport: string;
  state: string;
  age_ns: number;
  silent_ns: number;
  rtt_ns: number;
  in_flight: number;
  window: number;
  waits: string;
  snapshots: number;
  bytes: number;
  slot_busy: number;
  window_closed: number;
  inputs: number;
  inputs_missed: number;
  inputs_late: number;
  input_margin_ns: number;
  rewind_ns: number;
  views_clamped: number;
  /** Mispredictions that the client has reported. */
  mispredicted: number;
  /** The lost share of the last 50 or more packets with snapshots; null before. */
  loss: number | null;
  /** Since the newest acknowledgement; null before the first. */
  ack_age_ns: number | null;
  /** Bytes of all datagrams and of the stream. */
  received_bytes: number;
  sent_bytes: number;
  /** To the client: bytes of reliable messages, and the number of unreliable ones. */
  queued_bytes: number;
  queued_messages: number;
  /** Messages of the client that wait for their stage. */
  waiting: number;
  simulated: string;
}

export interface Clients {
  tick: number;
  clients: Client[];
  more: number;
}

export interface LogLine {
  number: number;
  time: string;
  level: string;
  text: string;
  attrs: [string, string][];
}

export type Values = Record<string, { labels?: string[]; value: number }[]>;

export interface Class {
  name: string;
  fields: string[];
  types: string[];
  read: string[];
  map: string[];
}

export interface StateObject {
  id: string;
  class: string;
  owner: number;
  values: unknown[];
  changed?: number;
  weight?: number;
  shown?: boolean;
  acknowledged?: number;
  copy?: unknown[] | null;
}

/** Grid is a grid on the map, with the viewpoints of a client. */
export interface Grid {
  classes: string[];
  cell: number;
  inside: number;
  border: number;
  eyes: { cell: [number, number]; object: string }[];
}

export interface State {
  tick: number;
  objects: StateObject[];
  more: number;
  grids: Grid[];
}

export interface Cost {
  id: string;
  class: string;
  owner: number;
  bytes: number;
  records: number;
  fulls: number;
}

export interface Costs {
  tick: number;
  seconds: number;
  bytes: number;
  objects: Cost[];
}

export interface Explanation {
  reason: string;
  class: string;
  field: string;
  text: string;
}

export interface Recording {
  name: string;
  bytes: number;
  schema: string;
  room: string;
  kind: string;
  seed: string;
  settings: Record<string, string> | null;
  tick_rate: [number, number];
  fixed_rate: [number, number];
  classes: Class[];
  ticks: number;
  first: number;
  last: number;
  progress: number;
  outcome: { state: string; tick: number; text: string };
}

/** PastList lists the copies of past ticks, and the ended rooms whose ticks are in memory. */
export interface PastList {
  copies: { past: number; name: string; first: number; last: number }[];
  ended: { room: string; last: number }[];
}

/** Saved lists the recordings in the server's folders. */
export interface Saved {
  files: { folder: number; name: string; path: string; room: string; kept: boolean; bytes: number; modified_seconds: number }[];
  more: number;
  folders: string[];
}

export interface RecordedTicks {
  every: number;
  ticks: number[];
  objects: number[];
  added: number[];
  removed: number[];
  changed: number[];
  joins: number[];
  leaves: number[];
  drops: number[];
  resumes: number[];
  messages: number[];
  inputs: number[];
  posts: number[];
  results: number[];
  dropped: number[];
  late_ns: number[];
  lanes: { client: number; subject: string; from: number; to: number; messages: number[]; inputs: number[] }[];
  more_lanes: number;
}

export interface Diff {
  tick: number;
  previous: number;
  next: number;
  with: number;
  added: StateObject[];
  removed: StateObject[];
  changed: { id: string; class: string; owner: number; fields: { field: string; was: unknown; now: unknown }[] }[];
  more: number;
}

export interface Messages {
  arrivals: { kind: string; client?: number; at_ns?: number; method?: string; stage?: string; value?: unknown; inputs?: { step: number; value: unknown }[]; text?: string }[];
  more: number;
}

export interface Found {
  query: string;
  found: { tick: number; object: string; field: string; value: unknown }[];
  more: number;
  next: number;
}

export interface TypeForm {
  kind: string;
  text: string;
  max?: number;
  of?: string;
  elem?: TypeForm;
  fields?: { name: string; type: TypeForm }[];
  /** Of an enum. */
  values?: string[] | undefined;
  numbers?: number[] | undefined;
}

export interface ProtoForm {
  no: number;
  name: string;
  kind: string;
  repeated: boolean;
  optional: boolean;
  of: string;
  oneof?: string;
  values?: string[];
  numbers?: number[];
}

export interface MethodForm {
  name: string;
  call: boolean;
  server_only: boolean;
  /** The room has a handler for it. */
  handled: boolean;
  secret: boolean;
  stages: { name: string; number: number }[];
  message: TypeForm;
  answer: TypeForm | null;
  timeout_ms: number;
}

export interface Forms {
  methods: MethodForm[];
  input: TypeForm | null;
  messages: Record<string, ProtoForm[]>;
}

export interface Payloads {
  tick: number;
  method: string;
  payloads: { tick: number; client: number; stage: string; outcome: string; value: unknown; cut: number }[];
}

/** Cluster is empty but for its text without a cluster. */
export interface Cluster {
  server: string;
  connected: boolean;
  text: string;
  servers: ClusterServer[];
  rooms: ClusterRoom[];
  total: number;
  moves: Move[];
}

export interface ClusterServer {
  id: string;
  own: boolean;
  region: string;
  zone: string;
  schema: string;
  suspect: boolean;
  draining: boolean;
  rooms: number;
  max_rooms: number;
  clients: number;
  max_clients: number;
  overload: string;
  addresses: { carrier: string; addr: string }[];
}

export interface ClusterRoom {
  name: string;
  kind: string;
  server: string;
  own: boolean;
  state: string;
  locked: boolean;
  players: number;
  max: number;
}

/** Move is the move of a client or, without one, of a room between two servers. */
export interface Move {
  time: string;
  out: boolean;
  client: number;
  from_server: string;
  from_room: string;
  to_server: string;
  to_room: string;
  state: string;
  text: string;
  took_ns: number;
}

export interface Data {
  count: number;
  bytes: number;
}

/** Traffic has the bytes of one client since counting began. */
export interface Traffic {
  tick: number;
  client: number;
  seconds: number;
  /** Sent to the client; an empty class is the ends of objects. */
  classes: { class: string; bytes: number }[];
  inputs: Data;
  methods: { method: string; received: Data; sent: Data }[];
}

/** Waits tells how long messages waited from arrival to handler, since counting began. */
export interface Waits {
  tick: number;
  seconds: number;
  methods: { method: string; count: number; sum_ns: number; max_ns: number }[];
}
