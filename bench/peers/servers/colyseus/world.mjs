// The world and its schema, as in bench/world.
import { schema, t } from '@colyseus/schema'

export const entities = 100

export const Body = schema({ x: t.float32(), y: t.float32(), vx: t.float32(), vy: t.float32() }, 'Body')

// A patch begins with the changes of the root: tick and sent, which every tick changes.
export const World = schema({ tick: t.uint32().default(0), sent: t.float64().default(0), bodies: t.array(Body) }, 'World')

const circle = (tick, i) => {
  const radius = 20 + i / 3
  const s = Math.sin(tick / 120 + i)
  const c = Math.cos(tick / 120 + i)
  return { x: Math.fround(100 + radius * c), y: Math.fround(-50 + radius * s), vx: Math.fround(-radius * s / 2), vy: Math.fround(radius * c / 2) }
}

export const move = (world, tick, i) => {
  if (world === 'tenth' && i % 10 !== 0) return circle(0, i)
  const b = circle(tick, i)
  if (world !== 'flips' || tick % 2 === 0) return b
  return { x: Math.fround(b.x + b.vx / 60), y: Math.fround(b.y + b.vy / 60), vx: -b.vx, vy: -b.vy }
}

// now is the machine's monotonic clock, in nanoseconds.
export const now = () => Number(process.hrtime.bigint())
