/** Measures how late the deliveries of one company are while many events of another company wait for a slow or failing receiver. */
import type { FaultyDynamoDb } from "../harness/faulty-dynamodb.ts";
import { type Answer, type Hook, Senders } from "./simulated-senders.ts";

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
  readonly senders: Senders;
  readonly troubled: Hook;
  readonly good: Hook;
  readonly worstLatenessMs: number;
  /** Maximum number of concurrent requests to the slow or failing receiver. */
  readonly sendersHeld: number;
}

const SENDERS = 10;

export async function isolate(db: FaultyDynamoDb, { events, others, trouble, wasQuick }: Trouble): Promise<Found> {
  const senders = new Senders(db, SENDERS);
  const [troubled, good] = [await senders.hook(), await senders.hook()];
  const quick = { ms: 20 };
  if (wasQuick) {
    senders.answers = () => quick;
    await senders.publish(troubled, 1_000_000, 20);
    await senders.runUntil(senders.clock + 5_000);
    senders.mostInFlight.clear();
  }
  senders.answers = ({ url }) => (url === good.url ? quick : trouble);
  await senders.publish(troubled, 1, events);
  const begun = senders.clock;
  const due = new Map<number, number>();
  for (let i = 0; i < others; i++) {
    await senders.runUntil(begun + i * 100);
    due.set(i + 1, senders.clock);
    await senders.publish(good, i + 1, 1);
  }
  await senders.runUntil(senders.clock + 30_000);
  const late = senders.sent
    .filter(({ url }) => url === good.url)
    .map(({ post, at }) => at - (due.get(JSON.parse(post.body).data.prospect.id) ?? 0));
  if (late.length !== others) throw new Error(`${late.length} of ${others} deliveries arrived`);
  return {
    senders,
    troubled,
    good,
    worstLatenessMs: Math.max(...late),
    sendersHeld: senders.mostInFlight.get(troubled.url) ?? 0,
  };
}
