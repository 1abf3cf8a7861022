/** Measures how late the deliveries of one company are while many events of another company wait for a slow or failing receiver. */
import type { FaultyDynamoDb } from "../harness/faulty-dynamodb.ts";
import { type Answer, DeliverySimulation, type Hook } from "./delivery-simulation.ts";

export interface Trouble {
  /** Number of events for the slow or failing receiver. They are published together. */
  readonly events: number;
  /** Number of events for the other company. They are published at a rate of ten per second. */
  readonly others: number;
  readonly trouble: Answer;
  /** True if the slow or failing receiver was quick before. The limiter then allows it more concurrent requests at first. */
  readonly wasQuick: boolean;
}

export interface Found {
  readonly simulation: DeliverySimulation;
  readonly troubled: Hook;
  readonly good: Hook;
  readonly worstLatenessMs: number;
  /** Maximum number of concurrent requests to the slow or failing receiver. */
  readonly mostConcurrent: number;
}

const SENDERS = 10;

export async function isolate(db: FaultyDynamoDb, { events, others, trouble, wasQuick }: Trouble): Promise<Found> {
  const simulation = new DeliverySimulation(db, SENDERS);
  const [troubled, good] = [await simulation.hook(), await simulation.hook()];
  const quick = { ms: 20 };
  if (wasQuick) {
    simulation.answers = () => quick;
    await simulation.publish(troubled, 1_000_000, 20);
    await simulation.runUntil(simulation.clock + 5_000);
    simulation.mostInFlight.clear();
  }
  simulation.answers = ({ url }) => (url === good.url ? quick : trouble);
  await simulation.publish(troubled, 1, events);
  const begun = simulation.clock;
  const due = new Map<number, number>();
  for (let i = 0; i < others; i++) {
    await simulation.runUntil(begun + i * 100);
    due.set(i + 1, simulation.clock);
    await simulation.publish(good, i + 1, 1);
  }
  await simulation.runUntil(simulation.clock + 30_000);
  const late = simulation.sent
    .filter(({ url }) => url === good.url)
    .map(({ post, at }) => at - (due.get(JSON.parse(post.body).data.prospect.id) ?? 0));
  if (late.length !== others) throw new Error(`${late.length} of ${others} deliveries arrived`);
  return {
    simulation,
    troubled,
    good,
    worstLatenessMs: Math.max(...late),
    mostConcurrent: simulation.mostInFlight.get(troubled.url) ?? 0,
  };
}
