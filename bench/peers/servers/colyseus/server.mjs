// Colyseus' server: node server.mjs ADDR RATE WORLD
import { Room, Server } from '@colyseus/core'
import { WebSocketTransport } from '@colyseus/ws-transport'
import { Body, World, entities, move, now } from './world.mjs'

const [address, rate, world] = process.argv.slice(2)
const [host, port] = address.split(':')

let stalls = false
process.on('SIGIO', () => { stalls = true })

class Peers extends Room {
  state = new World()
  patchRate = 1000 / rate
  maxClients = 4096

  onCreate () {
    for (let i = 0; i < entities; i++) this.state.bodies.push(new Body())
    this.setFixedTimestep(() => this.step(), Number(rate))
  }

  step () {
    this.state.sent = now()
    if (stalls) {
      stalls = false
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2000)
    }
    const tick = ++this.state.tick
    for (let i = 0; i < entities; i++) {
      // Schema sends the fields whose value changes.
      const b = this.state.bodies[i]
      const to = move(world, tick, i)
      b.x = to.x
      b.y = to.y
      b.vx = to.vx
      b.vy = to.vy
    }
  }
}

const server = new Server({ transport: new WebSocketTransport(), greet: false })
server.define('peers', Peers)
await server.listen(Number(port), host)
