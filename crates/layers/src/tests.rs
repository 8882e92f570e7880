mod costs;
mod crashes;
mod histories;
mod privacy;
mod strangers;
mod world;
