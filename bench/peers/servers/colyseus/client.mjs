// Colyseus' clients: node client.mjs ADDR RATE WORLD CLIENTS. See control in player.go.
import { Client } from '@colyseus/sdk'
import { writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { World, entities, move, now } from './world.mjs'

const [address, , world, count] = process.argv.slice(2)
const clients = Number(count)
const allDecode = 50
const recordSize = 24

let records = Buffer.alloc(recordSize << 12)
let used = 0
let wrong = 0
let lost = 0
const started = new Set()
const sockets = []

function update (client, tick, sent) {
  if (used === records.length) records = Buffer.concat([records, Buffer.alloc(records.length)])
  records.writeUInt32LE(client, used)
  records.writeUInt32LE(tick, used + 4)
  records.writeBigInt64LE(BigInt(sent), used + 8)
  records.writeBigInt64LE(process.hrtime.bigint(), used + 16)
  used += recordSize
  started.add(client)
}

function compare (state) {
  for (let i = 0; i < entities; i++) {
    const b = state.bodies[i]
    const want = move(world, state.tick, i)
    if (b.x !== want.x || b.y !== want.y || b.vx !== want.vx || b.vy !== want.vy) {
      wrong++
      return
    }
  }
}

// head reads the tick and the time of a patch without decoding it: an operation and the value of
// each. An operation that replaces a field is 128 and the field's number.
function head (client, bytes, it) {
  const view = new DataView(bytes.buffer, bytes.byteOffset + it.offset)
  if (view.getUint8(0) !== 128 || view.getUint8(5) !== 129) throw new Error('a patch does not begin with the tick and the time')
  update(client, view.getUint32(1, true), view.getFloat64(6, true))
}

async function join (n) {
  const room = await new Client('ws://' + address).joinOrCreate('peers', {}, World)
  room.reconnection.enabled = false
  room.onLeave(() => lost++)
  room.onError(() => {})
  sockets.push(room.connection.transport.ws._socket)
  if (clients <= allDecode || n === 0) {
    let before = -1
    room.onStateChange(state => {
      if (state.tick === 0) return
      update(n, state.tick, state.sent)
      if (n === 0 && state.tick !== before) compare(state)
      before = state.tick
    })
  } else {
    room.serializer.patch = (bytes, it) => head(n, bytes, it)
  }
}

const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))

async function patiently (n) {
  for (const end = Date.now() + 20000; ; await sleep(50)) {
    try {
      return await join(n)
    } catch (err) {
      if (Date.now() > end) throw err
    }
  }
}

const together = 10
for (let n = 0; n < clients; n += together) {
  await Promise.all(Array.from({ length: Math.min(together, clients - n) }, (_, i) => patiently(n + i)))
}
while (started.size < clients) await sleep(5)
console.log('ready')

const read = () => sockets.reduce((sum, s) => sum + s.bytesRead, 0)
let before = 0
createInterface({ input: process.stdin }).on('line', line => {
  const [word, file] = line.split(' ')
  if (word === 'begin') {
    used = wrong = 0
    before = read()
  } else if (word === 'end') {
    writeFileSync(file, records.subarray(0, used))
    console.log(`done ${read() - before} ${lost} ${wrong}`)
  }
}).on('close', () => process.exit(0))
